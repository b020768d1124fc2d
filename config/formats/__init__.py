"""How Django writes values on the console, by language (there is one)."""
