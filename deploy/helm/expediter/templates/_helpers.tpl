{{- define "expediter.name" -}}
{{- if contains "expediter" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-expediter{{ end }}
{{- end }}

{{- define "expediter.selectorLabels" -}}
app.kubernetes.io/name: expediter
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "expediter.serviceLabels" -}}
{{ include "expediter.selectorLabels" . }}
app.kubernetes.io/component: service
{{- end }}

{{- define "expediter.labels" -}}
{{ include "expediter.selectorLabels" . }}
app.kubernetes.io/part-of: expediter
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "expediter.serviceAccountName" -}}
{{ .Values.serviceAccount.existingName | default (include "expediter.name" .) }}
{{- end }}

{{- define "expediter.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* What the pods of the service and of the migration have in common. */}}
{{- define "expediter.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.extraVolumes }}
volumes: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "expediter.container" -}}
image: {{ include "expediter.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
{{- with .Values.extraVolumeMounts }}
volumeMounts: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
