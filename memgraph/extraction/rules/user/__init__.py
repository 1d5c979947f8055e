"""What users state in sessions: rules, preferences, decisions, facts."""
