//! The hidden layers of generators and discriminators.

use crate::Error;
use crate::examples::Shape;
use crate::layer::Layer;
use crate::window::Window;

/// The hidden layers of a pair of networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// Dense layers, given by the width of each hidden layer of a generator. A discriminator has them in reverse order.
    Dense(Vec<usize>),
    /// Convolutions for images, each of which halves rows and columns, given by the number of filters of each layer of
    /// a discriminator. A generator has them transposed, in reverse order, after a dense layer. This is DCGAN (Radford,
    /// Metz and Chintala 2016) without batch normalisation, which would let a record influence the gradients of all
    /// others.
    Convolutions(Vec<usize>),
}

impl Hidden {
    /// Returns the layers of a generator, from noise and condition to a record.
    ///
    /// # Errors
    /// [`Error::Setting`] for convolutions if records are not images, or cannot be halved this many times.
    pub(crate) fn generator(&self, noise: usize, shape: &Shape) -> Result<Vec<Layer>, Error> {
        let inputs = noise + shape.conditions();
        match self {
            Self::Dense(widths) => {
                let widths = [&[inputs], widths.as_slice(), &[shape.width()]].concat();
                Ok(Layer::dense(&widths))
            }
            Self::Convolutions(filters) => {
                let mut layers = halvings(filters, shape)?;
                // `halvings` returns at least one layer.
                let outputs = layers.last().map_or(shape.width(), Layer::outputs);
                layers.push(Layer::Dense { inputs, outputs });
                layers.reverse();
                for layer in &mut layers {
                    if let Layer::Convolution { window, filters } = *layer {
                        *layer = Layer::Transposed { window, filters };
                    }
                }
                Ok(layers)
            }
        }
    }

    /// Returns the layers of a discriminator or classifier, from a record and its condition to `outputs` values.
    ///
    /// # Errors
    /// Those of [`Hidden::generator`].
    pub(crate) fn critic(
        &self,
        inputs: usize,
        shape: &Shape,
        outputs: usize,
    ) -> Result<Vec<Layer>, Error> {
        match self {
            Self::Dense(widths) => {
                let hidden = widths.iter().rev().copied();
                let widths: Vec<usize> = [inputs].into_iter().chain(hidden).collect();
                Ok(Layer::dense(&[widths, vec![outputs]].concat()))
            }
            Self::Convolutions(filters) => {
                let mut layers = halvings(filters, shape)?;
                let inputs = layers.last().map_or(inputs, Layer::outputs);
                layers.push(Layer::Dense { inputs, outputs });
                Ok(layers)
            }
        }
    }
}

/// Returns convolutions that halve an image again and again.
fn halvings(filters: &[usize], shape: &Shape) -> Result<Vec<Layer>, Error> {
    let Shape::Image { rows, columns } = *shape else {
        let problem = "convolutions need images, not tables";
        return Err(Error::setting("filters", problem));
    };
    let halves = u32::try_from(filters.len()).ok();
    let halves = halves.and_then(|halves| 1usize.checked_shl(halves));
    let whole = |pixels: usize| halves.is_some_and(|halves| pixels.is_multiple_of(halves));
    if filters.is_empty() || !whole(rows) || !whole(columns) {
        let count = filters.len();
        let problem = format!("{rows} by {columns} pixels cannot be halved {count} times");
        return Err(Error::setting("filters", problem));
    }
    let (mut size, mut channels) = ((rows, columns), 1);
    let mut layers = Vec::with_capacity(filters.len() + 1);
    for &filters in filters {
        let window = Window::halving(size.0, size.1, channels);
        layers.push(Layer::Convolution { window, filters });
        (size, channels) = ((size.0 / 2, size.1 / 2), filters);
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::parameter_count;

    #[test]
    fn convolutions_halve_images_and_generators_double_them() {
        let shape = Shape::Image {
            rows: 28,
            columns: 20,
        };
        let hidden = Hidden::Convolutions(vec![8, 16]);
        let critic = hidden.critic(560, &shape, 1).unwrap();
        assert_eq!(
            critic[2],
            Layer::Dense {
                inputs: 7 * 5 * 16,
                outputs: 1
            }
        );
        // 4 by 4 windows with a bias per filter, then the dense layer.
        let count = (16 + 1) * 8 + (16 * 8 + 1) * 16 + (7 * 5 * 16 + 1);
        assert_eq!(parameter_count(&critic).unwrap(), count);
        let generator = hidden.generator(10, &shape).unwrap();
        assert_eq!(
            generator[0],
            Layer::Dense {
                inputs: 10,
                outputs: 7 * 5 * 16
            }
        );
        assert!(parameter_count(&generator).is_ok());
        assert_eq!(generator[2].outputs(), 560);
        let wrong = [vec![], vec![4; 3], vec![4; 100]];
        for filters in wrong {
            assert!(matches!(
                Hidden::Convolutions(filters).generator(10, &shape),
                Err(Error::Setting { .. })
            ));
        }
        assert!(matches!(
            hidden.generator(10, &Shape::Codes(vec![28])),
            Err(Error::Setting { .. })
        ));
    }
}
