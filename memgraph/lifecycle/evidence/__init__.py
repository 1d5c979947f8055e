"""Evidence: the episodes in force and the memories already derived from them, the common input of all learning."""
