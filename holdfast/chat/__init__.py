"""Message delivery with receipts that one can rely on."""
