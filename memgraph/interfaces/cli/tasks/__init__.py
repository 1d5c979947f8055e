"""Commands for tasks and pins."""
