//! Figures that Saleem and Fan print for MNIST, without noise. Their classifier, networks and records are different.

use crate::gan::method::Method;

/// Returns the inception score and the Fréchet distance.
pub fn quality(method: Method) -> Option<[f64; 2]> {
    match method {
        Method::Central => Some([9.2, 12.2]),
        Method::Local => Some([5.5, 40.8]),
        Method::Federated => Some([8.4, 16.21]),
        _ => None,
    }
}

/// Returns white box and Monte Carlo in percent, and total variation.
pub fn attacks(method: Method, rule: &str) -> Option<[f64; 3]> {
    match (method, rule) {
        (Method::Central, _) => Some([48.1, 77.1, 0.438]),
        (Method::Local, "ns") => Some([11.5, 68.8, 0.37]),
        (Method::Local, "qli") => Some([25.1, 72.1, 0.45]),
        (Method::Local, "dli") => Some([17.5, 69.3, 0.41]),
        (Method::Local, "qs") => Some([18.25, 70.5, 0.44]),
        (Method::Federated, "ns") => Some([21.5, 72.8, 0.44]),
        (Method::Federated, "qli") => Some([20.0, 71.1, 0.41]),
        (Method::Federated, "dli") => Some([20.5, 68.1, 0.40]),
        (Method::Federated, "qs") => Some([21.12, 72.2, 0.43]),
        _ => None,
    }
}
