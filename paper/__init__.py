"""The paper's other algorithms, its experiments, data and figures; surelist by its public names."""
