use fhaim_domain::{TimeFormat, TimeOptions, form::KindForm};
pub(crate) fn candidate_formats(text: &str) -> Vec<(String, KindForm)> {
    let options = TimeOptions { first_year: Some(1950), midnight: true, offsets: Vec::new() };
    [("%Y-%m-%d", KindForm::Date), ("%d/%m/%Y", KindForm::Date), ("%Y-%m-%d %H:%M", KindForm::Datetime), ("%H:%M", KindForm::Time)]
        .into_iter()
        .filter(|(format, kind)| TimeFormat::with_options(format, *kind, options.clone()).is_ok_and(|f| f.read(text).is_some()))
        .map(|(format, kind)| (format.to_owned(), kind))
        .collect()
}
