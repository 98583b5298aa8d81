"""Objects to which no value is given twice: decided in O(n log n), one module an object, kernels on flat arrays."""
