//! Loads saved models of every format.

use std::sync::Arc;

use fhaim_pgm::Model;

use crate::model::{FittedModel, ModelError};

/// Reads a saved model of one format. Neither the model nor a query of it may take more than the
/// given number of bytes.
type Load = fn(&[u8], usize) -> Result<Arc<dyn FittedModel>, ModelError>;

/// The known formats, each with the bytes that its files begin with.
const FORMATS: [(&[u8], Load); 1] = [(Model::MAGIC, load_graphical)];

fn load_graphical(bytes: &[u8], max_bytes: usize) -> Result<Arc<dyn FittedModel>, ModelError> {
    Ok(Arc::new(Model::load(bytes, max_bytes)?))
}

/// Loads a model that [`FittedModel::save`] wrote, of any known format. It draws the same samples
/// as the saved model, bit for bit. Neither the model nor a query of it may take more than
/// `max_bytes`.
///
/// # Errors
/// [`ModelError::UnknownFormat`]; an error for bytes that are not exactly one saved model, or a
/// model that takes more than `max_bytes`.
pub fn load_model(bytes: &[u8], max_bytes: usize) -> Result<Arc<dyn FittedModel>, ModelError> {
    let mut formats = FORMATS.into_iter();
    let (_, load) = formats
        .find(|(magic, _)| bytes.starts_with(magic))
        .ok_or(ModelError::UnknownFormat)?;
    load(bytes, max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::{Clique, Domain};
    use fhaim_pgm::{FitOptions, Measurement, fit};
    use rand::{SeedableRng, rngs::StdRng};

    #[test]
    fn saved_model_is_restored_and_other_bytes_are_rejected() {
        let domain = Domain::new(vec![2, 3]);
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let measured = [Measurement::cells(Clique::new([0, 1]), values, 1.0)];
        let fitted = fit(&domain, &measured, &FitOptions::default(), None).unwrap();
        let fitted: &dyn FittedModel = &fitted;
        let loaded = load_model(&fitted.save(), 1 << 20).unwrap();
        assert_eq!(loaded.save(), fitted.save());
        let draw = |model: &dyn FittedModel| model.sample(50, &mut StdRng::seed_from_u64(3));
        assert_eq!(draw(loaded.as_ref()), draw(fitted));
        assert!(matches!(
            load_model(b"nothing", 1 << 20),
            Err(ModelError::UnknownFormat)
        ));
        assert!(matches!(
            load_model(&fitted.save()[..20], 1 << 20),
            Err(ModelError::Generator(..))
        ));
    }
}
