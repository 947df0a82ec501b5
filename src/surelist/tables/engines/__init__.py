"""One module per engine, behind one small interface: nobody else asks an engine for its name."""
