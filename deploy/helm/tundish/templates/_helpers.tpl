{{- define "tundish.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- else -}}{{ printf "%s-tundish" .Release.Name | trunc 40 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "tundish.selector" -}}
app.kubernetes.io/name: tundish
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tundish.labels" -}}
{{ include "tundish.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tundish.image" -}}
{{- $slim := ternary "-slim" "" (ne .Values.database.existingSecret "") -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s%s" .Chart.AppVersion $slim) }}
{{- end -}}

{{/* What servers, workers and the migration have in common. */}}
{{- define "tundish.env" -}}
- name: ADMIN_HOST_NAMES
  {{- $admin := printf "%s-admin" (include "tundish.name" .) }}
  value: {{ concat (list $admin (printf "%s.%s.svc" $admin .Release.Namespace)) .Values.admin.hostNames | join "," | quote }}
{{- if not (hasKey .Values.settings "ADMIN_HOST") }}
- name: ADMIN_HOST
  value: 0.0.0.0
{{- end }}
{{- /* A number of a values file is a float, which "quote" alone writes as 2.097152e+06. */}}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ ternary (toJson $value) (toString $value) (kindIs "float64" $value) | quote }}
{{- end }}
{{- end -}}

{{- define "tundish.envFrom" -}}
{{- with .Values.database.existingSecret }}
envFrom:
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end -}}

{{- define "tundish.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "tundish.pod" -}}
automountServiceAccountToken: false
{{- /* A Service called "admin" would set ADMIN_PORT to its address. */}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
