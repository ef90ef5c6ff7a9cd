"""Who is there, who can reach whom, and which road leads where."""
