"""Messages as bytes: MessagePack for the structure, numpy arrays as raw buffers beside it."""
