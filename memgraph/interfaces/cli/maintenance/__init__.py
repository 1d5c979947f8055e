"""Commands that maintain a store: settings, diagnosis, embedding, export and import."""
