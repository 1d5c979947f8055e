"""Settings of single parts, which `memgraph.config` puts together."""
