"""Files that hold tables: text, Excel, Parquet, JSON; each becomes the same lines of entries."""
