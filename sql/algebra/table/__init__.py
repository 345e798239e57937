"""Relations that stay: named windows and tables, their rows and indexes, and what reads and writes them."""
