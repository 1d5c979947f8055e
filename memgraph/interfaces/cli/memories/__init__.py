"""Commands that store, find and change memories."""
