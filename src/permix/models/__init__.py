"""The estimators people import, in scikit-learn style."""
