"""Plain numbers to pictures: SVG and matplotlib axes. Imports errors and files of ours, nothing else."""
