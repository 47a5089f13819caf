"""Changes and recorded reads of memory. One function is one transaction's worth; the scope is entered by the caller."""
