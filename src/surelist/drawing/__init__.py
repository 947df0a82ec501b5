"""Plain numbers to pictures: SVG and matplotlib axes. Imports nothing of ours but errors."""
