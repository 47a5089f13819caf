"""REST of memory: profile, memories, recall, knowledge."""
