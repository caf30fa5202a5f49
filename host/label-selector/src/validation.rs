//! The form of label keys and values, with the API server's messages about other forms.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Returns the faults of a label key, none for a valid one.
///
/// A key is a name of at most 63 characters, or a DNS subdomain, a slash and such a name. Annotation keys and
/// finalizers have the same form.
#[must_use]
pub fn label_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".into());
            } else {
                faults
                    .extend(subdomain_faults(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 characters".into());
    }
    if !is_qualified(name) {
        faults.push(format!("name part {QUALIFIED}"));
    }
    faults
}

/// Returns the faults of a label value, none for a valid one.
///
/// A value is empty or a name of at most 63 characters.
#[must_use]
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > 63 {
        faults.push("must be no more than 63 characters".into());
    }
    if !value.is_empty() && !is_qualified(value) {
        faults.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .into(),
        );
    }
    faults
}

/// Returns the faults of a DNS subdomain (RFC 1123), none for a valid one.
#[must_use]
pub fn subdomain_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 253 {
        faults.push("must be no more than 253 characters".into());
    }
    if !name.split('.').all(is_label) {
        faults.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{LABEL}(\\.{LABEL})*')"
        ));
    }
    faults
}

fn is_qualified(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && is_end(name.bytes().next())
        && is_end(name.bytes().last())
}

fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}
