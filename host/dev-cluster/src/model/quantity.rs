//! Quantities (`500m`, `1Gi`): parsing, and the canonical form.

const NANO: i128 = 1_000_000_000;

/// Returns the canonical form: the largest suffix of its family that needs no fraction.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    let (nanos, family) = parse(text)?;
    let sign = if nanos < 0 { "-" } else { "" };
    Ok(format!("{sign}{}", family.write(nanos.abs())))
}

/// Returns the amount in billionths.
pub(crate) fn nanos(text: &str) -> Result<i128, String> {
    parse(text).map(|(nanos, _)| nanos)
}

fn parse(text: &str) -> Result<(i128, Family), String> {
    let bad = || {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    };
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let (number, negative) = match number.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (number.strip_prefix('+').unwrap_or(number), false),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let mantissa: i128 = digits.parse().map_err(|_| bad())?;
    let (family, factor) = Family::of(suffix).ok_or_else(bad)?;
    let places = u32::try_from(fraction.len()).map_err(|_| bad())?;
    let scaled = mantissa.checked_mul(NANO).and_then(|value| factor.apply(value)).ok_or_else(bad)?;
    let divisor = 10_i128.checked_pow(places).ok_or_else(bad)?;
    // Amounts below a billionth are rounded up, away from zero.
    let nanos = scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0);
    Ok((if negative { -nanos } else { nanos }, family))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

enum Factor {
    Power10(i32),
    Power1024(u32),
}

// === impl Family ===

impl Family {
    fn of(suffix: &str) -> Option<(Self, Factor)> {
        let decimal = |power| Some((Self::Decimal, Factor::Power10(power)));
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            _ => {
                let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|s| *s == suffix);
                if let Some(index) = binary {
                    return Some((Self::Binary, Factor::Power1024(u32::try_from(index).ok()? + 1)));
                }
                let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                Some((Self::Exponent, Factor::Power10(exponent)))
            }
        }
    }

    fn write(self, nanos: i128) -> String {
        if nanos == 0 {
            return "0".into();
        }
        if self == Self::Binary && nanos % NANO == 0 && nanos / NANO >= 1024 {
            let mut value = nanos / NANO;
            let mut power = 0;
            while value % 1024 == 0 && power < 6 {
                value /= 1024;
                power += 1;
            }
            return format!("{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let mut value = nanos;
        let mut power: usize = 0;
        while value % 1000 == 0 && power < 9 {
            value /= 1000;
            power += 1;
        }
        if self == Self::Exponent {
            let exponent = power as i32 * 3 - 9;
            return if exponent == 0 { value.to_string() } else { format!("{value}e{exponent}") };
        }
        format!("{value}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power])
    }
}

// === impl Factor ===

impl Factor {
    fn apply(&self, value: i128) -> Option<i128> {
        match self {
            Self::Power10(power) if *power >= 0 => {
                value.checked_mul(10_i128.checked_pow(power.unsigned_abs())?)
            }
            Self::Power10(power) => {
                let divisor = 10_i128.checked_pow(power.unsigned_abs())?;
                Some(value.div_euclid(divisor) + i128::from(value.rem_euclid(divisor) != 0))
            }
            Self::Power1024(power) => value.checked_mul(1024_i128.checked_pow(*power)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_are_written_in_canonical_form() {
        for (from, to) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1500Mi", "1500Mi"),
            ("100M", "100M"),
            ("1000k", "1M"),
            ("512", "512"),
            ("1e3", "1e3"),
            ("0", "0"),
            ("0.5Gi", "512Mi"),
            ("1", "1"),
            ("-5", "-5"),
            ("12E", "12E"),
        ] {
            assert_eq!(canonical(from).as_deref(), Ok(to), "{from}");
        }
        assert!(canonical("1x").is_err());
        assert!(canonical("").is_err());
    }
}
