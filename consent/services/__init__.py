"""Changes of consent: publishing purposes, entering what people said, opening a tenant with its purposes."""
