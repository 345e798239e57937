"""Running queries and the engine that hosts them."""
