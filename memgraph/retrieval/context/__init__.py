"""From a recall to the text that an agent is given."""
