//! Plugin files as JSON, with all defaults applied: what the host keeps of a version over a restart.

use std::path::Path;

use serde_json::{Value, json};

use super::{Error, PluginFile, RawFile, error::Place, names};

/// The keys whose change makes no other version; `to_json` leaves out `shadow`. docs/roll-outs.md lists them.
const MAKE_NO_VERSION: [&str; 4] = ["component", "suspend", "suspendWrites", "weight"];

// === impl PluginFile ===

impl PluginFile {
    /// Returns the content of the file, without the paths of components.
    pub(crate) fn to_json(&self) -> Value {
        let Self {
            path: _,
            name,
            component: _,
            service_account,
            config,
            config_version: _,
            limits,
            suspend_writes,
            is_suspended,
            dry_run,
            concurrency,
            weight,
            instances,
            probation,
            retry,
            shadow: _,
        } = self;
        let mut json = json!({
            "name": name,
            "component": "",
            "serviceAccount": service_account,
            "config": config,
            "limits": limits,
            "suspend": is_suspended,
            "suspendWrites": suspend_writes,
            "dryRun": dry_run,
            "concurrency": concurrency,
            "weight": weight,
            "instances": instances,
            "probation": probation,
        });
        if let Some(retry) = retry {
            json["retry"] = json!(retry);
        }
        json
    }

    /// Reads what [`PluginFile::to_json`] returned. The file has no shadow.
    pub(crate) fn from_json(path: &Path, component: &Path, json: &Value) -> Result<Self, Error> {
        let raw: RawFile = serde_json::from_value(json.clone()).map_err(|error| Error::Parse {
            path: path.to_owned(),
            place: Place::default(),
            message: error.to_string(),
        })?;
        let file = Self::validated(path, "", raw, names::plugin)?;
        Ok(Self { component: component.to_owned(), ..file })
    }

    /// Returns the settings on which it depends how the plugin behaves. Equal settings and equal components
    /// are the same version. A configuration of a Secret is named by its version.
    pub(crate) fn behaviour(&self) -> Value {
        let mut json = self.to_json();
        if let Some(settings) = json.as_object_mut() {
            settings.retain(|key, _| !MAKE_NO_VERSION.contains(&key.as_str()));
        }
        if let Some(version) = &self.config_version {
            json["config"] = json!(version);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_after_it_was_written_and_read() {
        let text = r#"
            name = "p"
            component = "p.wasm"
            suspend = true
            suspendWrites = true
            dryRun = true
            concurrency = 4
            weight = 7
            config = {a = [1, 2.5, "\u007f"], b = {c = true}}
            [serviceAccount]
            namespace = "ns"
            name = "p.q"
            [limits]
            memory = "64Mi"
            callDeadline = "1500ms"
            [instances]
            idleAfter = "0s"
            recycleAboveMemory = "1Gi"
            [probation]
            time = "90s"
            maxLosses = 0
            [retry]
            initialDelay = "5ms"
            parkedDelay = "1m"
        "#;
        let path = Path::new("plugins/p.toml");
        let file = PluginFile::parse(path, text).unwrap();
        let json = serde_json::to_string(&file.to_json()).unwrap();
        let read = PluginFile::from_json(path, &file.component, &serde_json::from_str(&json).unwrap());
        assert_eq!(read.unwrap(), file);
        let broken = PluginFile::from_json(path, path, &json!({"name": "p"})).unwrap_err().to_string();
        assert_eq!(broken, "plugins/p.toml: missing field `component`");
    }

    #[test]
    fn the_page_of_roll_outs_lists_the_keys_that_make_no_other_version() {
        let page = include_str!("../../../../docs/roll-outs.md");
        let (_, list) = page.split_once("The path of the file, its comments, ").unwrap();
        let (list, _) = list.split_once(" make no other version").unwrap();
        let mut listed: Vec<_> = list.split('`').skip(1).step_by(2).collect();
        listed.sort_unstable();
        // The component is compared by its digest, and the shadow is no part of the JSON.
        let mut without: Vec<_> = MAKE_NO_VERSION.into_iter().filter(|key| *key != "component").collect();
        without.push("shadow");
        without.sort_unstable();
        assert_eq!(listed, without);
        let behaviour = |more: &str| {
            let text = "name: p\ncomponent: p.wasm\nserviceAccount: {namespace: a, name: b}\n";
            PluginFile::parse(Path::new("p.yaml"), &format!("{text}{more}")).unwrap().behaviour()
        };
        for key in ["shadow: q.wasm", "suspend: true", "suspendWrites: true", "weight: 7"] {
            assert_eq!(behaviour(key), behaviour(""), "{key}");
        }
        assert_ne!(behaviour("concurrency: 2"), behaviour(""));
    }
}
