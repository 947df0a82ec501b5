"""scikit-learn's way in: one meta-estimator, which must be the outermost one, and what checks that it is."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    from surelist.errors import MissingDependency

    raise MissingDependency(
        "ShortlistClassifier needs scikit-learn: pip install 'surelist[sklearn]'."
    ) from error

from surelist.estimator.classifier import ShortlistClassifier

__all__ = ["ShortlistClassifier"]
