"""How a cell shows what was measured: figures with words, tables, and saved and live experiments."""
