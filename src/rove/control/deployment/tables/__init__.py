"""The tables of a deployment: routes as a tree, who reads whom, past routes, the journal that undoes changes; and the
history of all changes."""
