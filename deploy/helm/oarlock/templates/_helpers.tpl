{{- define "oarlock.labels" -}}
app.kubernetes.io/name: oarlock
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "oarlock.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "oarlock.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: oarlock
    namespace: {{ .Release.Namespace | quote }}
{{- end }}

{{- /* The port of a URL. */ -}}
{{- define "oarlock.portOf" -}}
{{- $url := urlParse . -}}
{{- if regexMatch ":[0-9]+$" $url.host -}}
{{ regexFind "[0-9]+$" $url.host }}
{{- else -}}
{{ eq $url.scheme "https" | ternary 443 80 }}
{{- end -}}
{{- end }}
