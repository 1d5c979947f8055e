"""The projection in memory: columns to filter by, vectors and postings to seed from, edges to walk."""
