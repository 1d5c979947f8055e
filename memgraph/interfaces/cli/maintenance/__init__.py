"""Commands that maintain a store: settings, diagnosis, repair, embedding, export and import."""
