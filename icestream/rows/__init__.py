"""Records to rows of a table: text decoded and columns cast into its types, and what the table lacks."""
