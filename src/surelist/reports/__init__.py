"""Plain values to pages: summarise first, then render; a template computes nothing."""
