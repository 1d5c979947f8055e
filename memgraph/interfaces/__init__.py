"""What people and programs outside Python use: nothing in the package imports it."""
