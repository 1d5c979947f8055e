"""The projection in memory: columns for filters, vectors and postings for seeds, edges for walks."""
