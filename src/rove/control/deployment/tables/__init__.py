"""The tables of a deployment: routes as a tree, who reads whom, past routes, and the journal that undoes changes."""
