"""How Spark is started: Java, its settings, its Python workers."""
