"""Topics: their grammar, the subscription tree, the shared groups, the retained messages. Pure."""
