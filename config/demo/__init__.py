"""`make demo`: the product's story told over HTTP, each step checked. Start at story; the cast is made up."""
