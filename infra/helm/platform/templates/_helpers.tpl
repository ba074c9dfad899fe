{{- define "platform.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "platform.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "platform.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "platform.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "platform.selector" -}}
app.kubernetes.io/name: {{ include "platform.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "platform.labels" -}}
{{ include "platform.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "platform.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "platform.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "platform.image" -}}
{{- $repository := required "image.repository: name the repository to which you have copied the image" .Values.image.repository -}}
{{- if .Values.image.registry -}}
{{ $repository = printf "%s/%s" .Values.image.registry $repository }}
{{- end -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $repository (default (.Chart.AppVersion | replace "+" "_") .Values.image.tag) }}
{{- end -}}
{{- end }}

{{- define "platform.issuer" -}}
{{ required "issuer: the URL at which clients reach the platform, such as https://platform.example.com/kubernetes/management" .Values.issuer }}
{{- end }}

{{/* The host of the issuer, without a port. */}}
{{- define "platform.host" -}}
{{ regexReplaceAll "^https://([^/:]+).*$" (include "platform.issuer" .) "${1}" }}
{{- end }}

{{/* The names of the certificate, separated by commas. */}}
{{- define "platform.dnsNames" -}}
{{- $service := include "platform.fullname" . -}}
{{- $names := list (include "platform.host" .) $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) -}}
{{ join "," (concat $names .Values.tls.certManager.dnsNames | uniq) }}
{{- end }}

{{/* The Secret with the certificate of the pods. Empty: the platform's own authority. */}}
{{- define "platform.tlsSecret" -}}
{{- if and .Values.tls.existingSecret .Values.tls.certManager.enabled -}}
{{ fail "tls: set existingSecret or certManager, not both" }}
{{- else if .Values.tls.certManager.enabled -}}
{{ printf "%s-tls" (include "platform.fullname" .) }}
{{- else -}}
{{ .Values.tls.existingSecret }}
{{- end -}}
{{- end }}

{{- define "platform.adminSecret" -}}
{{ default (printf "%s-admin-key" (include "platform.fullname" .)) .Values.adminKey.existingSecret }}
{{- end }}

{{/* The ConfigMap with the platform configuration. Empty: none. */}}
{{- define "platform.configMap" -}}
{{- if and .Values.config .Values.existingConfigMap -}}
{{ fail "config: set config or existingConfigMap, not both" }}
{{- else if .Values.config -}}
{{ printf "%s-config" (include "platform.fullname" .) }}
{{- else -}}
{{ .Values.existingConfigMap }}
{{- end -}}
{{- end }}

{{/* The variables of the state, which every process of the platform needs. */}}
{{- define "platform.stateEnv" -}}
- name: PLATFORM_REDIS_URL
{{- if and .Values.redis.url .Values.redis.existingSecret }}
{{ fail "redis: set url or existingSecret, not both" }}
{{- else if .Values.redis.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.existingSecret }}
      key: url
{{- else }}
{{- $url := required "redis: set url, or existingSecret with the entry url" .Values.redis.url }}
{{- if contains "@" $url }}
{{ fail "redis.url: has a password; put the URL into a Secret, and name it in redis.existingSecret" }}
{{- end }}
{{- if .Values.redis.caSecret }}
{{- $url = printf "%s%sca_file=/etc/platform/redis-ca/ca.crt" $url (ternary "&" "?" (contains "?" $url)) }}
{{- end }}
  value: {{ $url | quote }}
{{- end }}
- name: PLATFORM_ENCRYPTION_KEY
  valueFrom:
    secretKeyRef:
      name: {{ required "encryption.existingSecret: name a Secret with the encryption key in the entry key" .Values.encryption.existingSecret }}
      key: key
{{- end }}

{{/* Half of the memory limit in bytes. Empty: there is no limit, or it has a unit that is not known here. */}}
{{- define "platform.goMemLimit" -}}
{{- $limit := toString (default "" (default dict .Values.resources.limits).memory) -}}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "k" 1000 "M" 1000000 "G" 1000000000 -}}
{{- $unit := regexReplaceAll "^[0-9]+" $limit "" -}}
{{- if and $limit (hasKey $units $unit) (ne $limit $unit) -}}
{{ div (mul (int64 (trimSuffix $unit $limit)) (get $units $unit)) 2 }}
{{- end -}}
{{- end }}
