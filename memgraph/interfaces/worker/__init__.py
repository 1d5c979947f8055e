"""A resident process per store that keeps the store open and answers on a Unix socket, and its clients.

`place`, `client` and `hook` import the standard library alone, so that an agent's hook takes no longer than starting Python.
"""
