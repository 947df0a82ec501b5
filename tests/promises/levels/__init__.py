"""The level of every declared set of conditions: worlds whose truth is known, and how each promise is judged in them."""
