"""How objects show themselves: in prompts and notebooks (``display``), as pictures (``axes``, ``charts``)."""

from surelist.drawing.display import Display, Displayed

__all__ = ["Display", "Displayed"]
