"""Which memories may be shown, to whom and in what: the one place for every reader."""
