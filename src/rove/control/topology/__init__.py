"""Who is there, who can reach whom, and which route leads where."""
