//! Graphical models fitted to noisy marginals: junction tree, belief propagation, sampling.
