"""A release in the formats of other tools: each is a type that writes what the release holds."""
