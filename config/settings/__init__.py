"""Settings: base serves, migrate migrates, analysis is for tools that only read the code."""
