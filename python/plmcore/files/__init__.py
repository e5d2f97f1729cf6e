"""Files under everything else: written whole or not at all, and texts in them."""
